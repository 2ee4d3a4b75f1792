import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import {
  type BatchItem,
  type BatchOutcome,
  type BatchRun,
  type BatchTimes,
  pageAfter,
  type VendorBatch,
  vendorBatches,
} from '../batches/vendor-batches.ts'
import { asList, asObject, asText } from '../request-fields.ts'
import { credentialOf, jsonReply, RefusedCall, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { checkHeaders } from './anthropic-messages.ts'
import { ANTHROPIC_ERRORS, ANTHROPIC_HEADERS, refuseAnthropic } from './anthropic-request.ts'

type Batch = VendorBatch<null>

const ROOT = '/v1/messages/batches'
const PATH = /^\/v1\/messages\/batches\/([^/]+?)(\/results|\/cancel)?$/
const CUSTOM_ID = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_REQUESTS = 100_000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Anthropic: `/v1/messages/batches`, with the batches of one sandbox (Anthropic API reference, "Message Batches"). Each request is
 * answered like a single call, and results are in another order than the requests.
 */
export function anthropicBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const batches = vendorBatches<null>(run, times)
  const found = (call: SandboxCall, nowMs: number): Batch => {
    checkHeaders(call)
    const id = PATH.exec(call.path)?.[1] ?? ''
    const batch = batches.find(id, credentialOf(call), nowMs)
    if (batch === undefined)
      throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `No message batch with the id ${id} was found.`))
    return batch
  }
  const operation = (
    name: string,
    method: string,
    suffix: '/results' | '/cancel' | undefined,
    answer: SandboxOperation['answer'],
  ): SandboxOperation => ({
    vendor: 'anthropic',
    operation: name,
    errors: ANTHROPIC_ERRORS,
    needsJson: false,
    promptText: () => '',
    matches: (call) => call.method === method && PATH.test(call.path) && PATH.exec(call.path)?.[2] === suffix,
    answer,
  })
  const base = { vendor: 'anthropic', errors: ANTHROPIC_ERRORS, promptText: () => '' } as const
  return [
    {
      ...base,
      operation: 'batches',
      matches: ({ method, path }) => method === 'POST' && path === ROOT,
      answer(call, { nowMs }) {
        checkHeaders(call)
        const id = `msgbatch_01${randomUUID().replaceAll('-', '').slice(0, 22)}`
        const items = checkedItems(call)
        const batch = batches.add({ id, apiKey: credentialOf(call), facts: null, items, lifeMs: DAY_MS }, nowMs)
        return jsonReply(200, ANTHROPIC_HEADERS, batchObject(batch, call))
      },
    },
    {
      ...base,
      operation: 'batch-list',
      needsJson: false,
      matches: ({ method, path }) => method === 'GET' && path === ROOT,
      answer(call, { nowMs }) {
        checkHeaders(call)
        const query = new URLSearchParams(call.query)
        const all = batches.list(credentialOf(call), nowMs)
        const { page, hasMore } = pageAfter(all, query.get('after_id'), Number(query.get('limit') ?? 20))
        return jsonReply(200, ANTHROPIC_HEADERS, {
          data: page.map((batch) => batchObject(batch, call)),
          has_more: hasMore,
          first_id: page[0]?.id ?? null,
          last_id: page.at(-1)?.id ?? null,
        })
      },
    },
    operation('batch', 'GET', undefined, (call, { nowMs }) =>
      jsonReply(200, ANTHROPIC_HEADERS, batchObject(found(call, nowMs), call)),
    ),
    operation('batch-results', 'GET', '/results', (call, { nowMs }) => {
      const batch = found(call, nowMs)
      if (batch.endedMs === undefined)
        throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `The message batch ${batch.id} has no results yet.`))
      const headers = ['content-type', 'application/x-jsonl', ...ANTHROPIC_HEADERS]
      return { status: 200, headers, pieces: [resultLines(batch)], streamed: false }
    }),
    operation('batch-cancel', 'POST', '/cancel', (call, { nowMs }) => {
      const { id, endedMs } = found(call, nowMs)
      if (endedMs !== undefined) refuseAnthropic(`Batch ${id} cannot be canceled because it has already ended.`)
      batches.cancel(id, nowMs)
      return jsonReply(200, ANTHROPIC_HEADERS, batchObject(found(call, nowMs), call))
    }),
    operation('batch-delete', 'DELETE', undefined, (call, { nowMs }) => {
      const { id, endedMs } = found(call, nowMs)
      if (endedMs === undefined) refuseAnthropic(`Batch ${id} cannot be deleted while it is being processed.`)
      batches.delete(id)
      return jsonReply(200, ANTHROPIC_HEADERS, { id, type: 'message_batch_deleted' })
    }),
  ]
}

function checkedItems(call: SandboxCall): BatchItem[] {
  const requests = asList(asObject(call.body)['requests'])
  if (requests.length === 0) refuseAnthropic('requests: List should have at least 1 item after validation, not 0')
  if (requests.length > MAX_REQUESTS)
    refuseAnthropic(`requests: List should have at most ${MAX_REQUESTS} items after validation, not ${requests.length}`)
  const keys = new Set<string>()
  return requests.map((request, index) => {
    const { custom_id: customId, params } = asObject(request)
    const key = asText(customId)
    if (!CUSTOM_ID.test(key))
      refuseAnthropic(`requests.${index}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
    if (keys.has(key)) refuseAnthropic(`requests.${index}.custom_id: Duplicate custom_id '${key}'`)
    keys.add(key)
    if (asObject(params)['stream'] === true)
      refuseAnthropic(`requests.${index}.params.stream: Not supported in a batch`)
    const { headers, query } = call
    const bytes = Buffer.from(JSON.stringify(params ?? null))
    return { key, call: { method: 'POST', path: '/v1/messages', query, headers, bytes } }
  })
}

/** Newest first: their order says nothing. */
function resultLines(batch: Batch): string {
  return batch.items
    .map(({ key }, index) => `${JSON.stringify({ custom_id: key, result: resultOf(batch.outcomes[index]) })}\n`)
    .reverse()
    .join('')
}

function resultOf(outcome: BatchOutcome | undefined): object {
  if (outcome?.kind === 'canceled' || outcome?.kind === 'expired') return { type: outcome.kind }
  if (outcome?.kind === 'answered' && outcome.status === 200) return { type: 'succeeded', message: outcome.body }
  const body = outcome?.body ?? { type: 'error', error: { type: 'api_error', message: 'Internal server error' } }
  return { type: 'errored', error: body }
}

function batchObject(batch: Batch, { headers }: SandboxCall): object {
  const { id, items, outcomes, state, createdMs, expiresMs, canceledMs, endedMs } = batch
  const hasEnded = endedMs !== undefined
  const count = (type: string): number =>
    outcomes.filter((outcome) => asObject(resultOf(outcome))['type'] === type).length
  const host = headers['host']
  const origin = host === undefined ? 'https://api.anthropic.com' : `http://${host}`
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : state === 'canceling' ? 'canceling' : 'in_progress',
    // They are counted at the end only.
    request_counts: hasEnded
      ? {
          processing: 0,
          succeeded: count('succeeded'),
          errored: count('errored'),
          canceled: count('canceled'),
          expired: count('expired'),
        }
      : { processing: items.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    ended_at: timestamp(endedMs),
    created_at: timestamp(createdMs),
    expires_at: timestamp(expiresMs),
    archived_at: null,
    cancel_initiated_at: timestamp(canceledMs),
    results_url: hasEnded ? `${origin}${ROOT}/${id}/results` : null,
  }
}

function timestamp(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString()
}
