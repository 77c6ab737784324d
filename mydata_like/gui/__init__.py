"""The graphical user interface: the only package that uses Qt."""
