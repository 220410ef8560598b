"""What an audit under torch.compile says, beside an audit of eager calls."""
