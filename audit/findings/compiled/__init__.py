"""The findings of an audit under torch.compile, beside those of an audit of eager calls."""
