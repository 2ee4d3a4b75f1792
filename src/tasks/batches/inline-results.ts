import type { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import type { InlineBatches, InlineResult } from '../../endpoints/inline-batches.ts'
import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { findMembers } from '../../wire/json-spans.ts'
import { linesOf, TOO_LONG } from './batch-lines.ts'
import { CANCELLED, EXPIRED } from './end-batch.ts'

/** Yields the results of a batch in its dialect, read from the batch's output files. Answers are passed on byte for byte. */
export async function* inlineResults(
  { blobs }: BatchSettings,
  dialect: InlineBatches,
  fileIds: readonly string[],
): AsyncIterable<string> {
  for (const id of fileIds) {
    const blob = await blobs.get(id)
    if (blob === undefined) throw new Error(`the bytes of the file ${id} are gone`)
    for await (const bytes of linesOf(blob.content, Number.MAX_SAFE_INTEGER)) {
      if (bytes !== TOO_LONG && bytes.byteLength > 0) yield `${resultLine(dialect, asBuffer(bytes))}\n`
    }
  }
}

function resultLine(dialect: InlineBatches, line: Buffer): string {
  const { custom_id: id, response, error } = findMembers(line, ['custom_id', 'response', 'error'])
  const textOf = (span: { readonly start: number; readonly end: number } | undefined): string =>
    span === undefined ? 'null' : line.toString('utf8', span.start, span.end)
  const customId = JSON.parse(textOf(id)) as string
  const answer = response && line.subarray(response.start, response.end)
  const { status_code: status, body } = answer ? findMembers(answer, ['status_code', 'body']) : {}
  if (answer === undefined || status === undefined || body === undefined)
    return dialect.resultLine(customId, notAnswered(dialect, JSON.parse(textOf(error))))
  const isAnswered = Number(answer.toString('latin1', status.start, status.end)) < 300
  const text = answer.toString('utf8', body.start, body.end)
  return dialect.resultLine(customId, { kind: isAnswered ? 'answered' : 'failed', body: text })
}

/** Formats a request without an answer: it was never executed, or its vendor returned only an error. */
function notAnswered(dialect: InlineBatches, error: unknown): InlineResult {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (code === CANCELLED) return { kind: 'cancelled' }
  if (code === EXPIRED) return { kind: 'expired' }
  const told = new GatewayError('upstream_unavailable', typeof message === 'string' ? { message } : {})
  return { kind: 'failed', body: dialect.errorText(told, '') }
}
