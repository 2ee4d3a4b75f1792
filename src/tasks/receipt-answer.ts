import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { submissionReceipt } from './video-record.ts'

const HEADERS = ['content-type', 'application/json']

/** The answer to a submission, as its caller gets it and as its Idempotency-Key replays it: 202 and the receipt. */
export function receiptAnswer(task: TaskRecord): StoredAnswer {
  return { status: 202, headers: HEADERS, body: Buffer.from(JSON.stringify(submissionReceipt(task))) }
}
