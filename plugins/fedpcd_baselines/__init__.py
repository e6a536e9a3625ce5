"""The ten published rules that FedPCD is compared with."""
