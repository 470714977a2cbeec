//! Results shown as tables, pages and pictures.

mod html;
mod picture;
mod summary;
mod synthetic;
mod table;
