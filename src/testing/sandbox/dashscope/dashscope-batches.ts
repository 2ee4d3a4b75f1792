import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import type { SandboxOperation } from '../sandbox-operation.ts'
import { DASHSCOPE_ERRORS, DASHSCOPE_HEADERS, dashscopeInvalid } from './dashscope-errors.ts'

const HOUR_MS = 60 * 60 * 1000

/** DashScope: `/compatible-mode/v1/files` and `…/batches`, with those of one sandbox (Model Studio, "OpenAI compatible - Batch"). */
export function dashscopeBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  return batchOperations(
    {
      vendor: 'dashscope',
      basePath: '/compatible-mode/v1',
      urlPrefix: '/compatible-mode',
      errors: DASHSCOPE_ERRORS,
      headers: DASHSCOPE_HEADERS,
      invalid: dashscopeInvalid,
      fileIdPrefix: 'file-batch-',
      endpoints: ['/v1/chat/completions', '/v1/embeddings'],
      windowMs,
      maxRequests: 50_000,
      maxFileBytes: 500 * 1024 * 1024,
    },
    run,
    times,
  )
}

/** 24 to 336 hours, as `24h` or `14d`. */
function windowMs(window: unknown): number | undefined {
  const [, digits, unit] = /^(\d{1,3})([hd])$/.exec(String(window)) ?? []
  const hours = Number(digits) * (unit === 'd' ? 24 : 1)
  return hours >= 24 && hours <= 336 ? hours * HOUR_MS : undefined
}
