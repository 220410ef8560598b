"""The findings of an audit about the kernels that a release ships."""
