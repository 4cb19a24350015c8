"""SQL for what people do with tasks. The worker has its own (``headrace.tasks.worker.store``)."""
