"""Local stand-ins for the vendors: they speak the vendors' wire contracts and do on demand what vendors do on bad days."""
