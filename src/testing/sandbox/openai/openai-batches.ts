import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import type { SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** OpenAI: `/v1/files` and `/v1/batches`, with those of one sandbox. */
export function openaiBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  return batchOperations(
    {
      vendor: 'openai',
      basePath: '/v1',
      urlPrefix: '',
      errors: OPENAI_ERRORS,
      headers: OPENAI_HEADERS,
      invalid: openaiInvalid,
      fileIdPrefix: 'file-',
      endpoints: ['/v1/responses', '/v1/chat/completions', '/v1/embeddings', '/v1/moderations'],
      windowMs: (window) => (window === '24h' ? DAY_MS : undefined),
      maxRequests: 50_000,
      maxFileBytes: 200 * 1024 * 1024,
    },
    run,
    times,
  )
}
