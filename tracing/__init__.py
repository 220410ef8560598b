"""What does a program do on mps, and where: its fallbacks, copies and synchronisations, by line and by module."""
