/**
 * What runs and serves batches. It is imported when a gateway with batches starts, so that others do not keep it in memory
 * (`bench/checks/idle-heap.check.ts`).
 */
export { serveBatchRequest } from './batch-requests.ts'
export { BatchRunner } from './batch-runner.ts'
export { cancelBatch } from './cancel-batch.ts'
export { serveFileRequest } from './file-requests.ts'
export { serveInlineBatchRequest } from './inline-requests.ts'
