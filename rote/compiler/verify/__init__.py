"""The certificate: a second, independent program that proves every plan, or names the rank that fails."""
