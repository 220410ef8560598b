"""Small forms of networks that people run on Macs: random weights, small inputs, the operators of the large ones."""
