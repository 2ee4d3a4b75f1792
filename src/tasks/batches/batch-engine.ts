/**
 * Runner and HTTP interface of batches. A gateway with batches imports this module when it starts, so that other gateways do not
 * keep it in memory (`bench/checks/idle-heap.check.ts`).
 */
export { serveBatchRequest } from './batch-requests.ts'
export { BatchRunner, cancelBatch } from './batch-runner.ts'
export { serveFileRequest } from './files.ts'
export { serveInlineBatchRequest } from './inline-requests.ts'
