//! Symbols that a kernel exports to modules.

use std::collections::BTreeSet;

/// The symbols that `Module.symvers` of a kernel's headers names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exports(BTreeSet<String>);

impl Exports {
    /// Parses Module.symvers: lines `0xCRC⇥SYMBOL⇥WHERE⇥EXPORT_SYMBOL…⇥[NAMESPACE]`. Symbols in a
    /// namespace are skipped, since the scheduler is in none.
    pub fn parse(symvers: &str) -> Self {
        let symbols = symvers.lines().filter_map(|line| {
            let mut fields = line.split('\t');
            let symbol = fields.nth(1)?;
            let namespace = fields.nth(2).unwrap_or_default();
            namespace.is_empty().then(|| symbol.to_owned())
        });
        Self(symbols.collect())
    }

    /// Whether modules may use `symbol`.
    pub fn has(&self, symbol: &str) -> bool {
        self.0.contains(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_module_may_use_is_exported() {
        let exports = Exports::parse(
            "0x00000000\telv_register\tvmlinux\tEXPORT_SYMBOL_GPL\t\n\
             0x12345678\telv_rb_add\tvmlinux\tEXPORT_SYMBOL\n\
             0x00000000\tcxl_probe\tdrivers/cxl/core\tEXPORT_SYMBOL_GPL\tCXL\n",
        );
        assert!(exports.has("elv_register") && exports.has("elv_rb_add"));
        assert!(!exports.has("cxl_probe") && !exports.has("elevator_alloc"));
    }
}
