# loader
