use std::{
    fs::File,
    io::{self, Read},
};

/// Opens a file, or standard input, whose name is `-`.
pub(crate) fn open(file: &str) -> io::Result<Box<dyn Read>> {
    let input: Box<dyn Read> = match file {
        "-" => Box::new(io::stdin()),
        file => Box::new(File::open(file)?),
    };
    Ok(input)
}
