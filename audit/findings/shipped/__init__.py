"""What an audit says about the kernels that a release ships."""
