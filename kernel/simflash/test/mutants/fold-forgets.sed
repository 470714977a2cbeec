# A page is given up when it is read to be moved, not when its copy is in flash.
s/^\tftl_store_hold(ftl, physical, pages);/\t;/
/collector->found = true;/a\
		if (ftl->config.power_loss \&\& ftl_store_is_buffer(ftl, physical))\
			for (uint32_t i = collector->gathered - pages; i < collector->gathered; i++)\
				ftl_store_torn_page(ftl, collector->page[i]);
