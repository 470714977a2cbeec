//! The rows of an experiment's result.

use serde_json::Value;

pub struct Rows(Vec<Value>);

impl Rows {
    pub fn of(result: &Value) -> Rows {
        Rows(result["rows"].as_array().unwrap().clone())
    }

    pub fn all(&self) -> &[Value] {
        &self.0
    }

    /// Those that have these values in these columns, one for each seed; at least one has.
    #[track_caller]
    pub fn with(&self, columns: &[(&str, &str)]) -> Vec<&Value> {
        let has = |row: &&Value| columns.iter().all(|(column, value)| row[column] == *value);
        let rows: Vec<_> = self.0.iter().filter(has).collect();
        assert!(!rows.is_empty(), "no row has {columns:?}");
        rows
    }

    /// The value of the first of them.
    #[track_caller]
    pub fn value(&self, columns: &[(&str, &str)]) -> f64 {
        self.with(columns)[0]["value"].as_f64().unwrap()
    }
}
