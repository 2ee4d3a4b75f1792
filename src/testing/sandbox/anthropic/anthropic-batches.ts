import { randomUUID } from 'node:crypto'
import {
  type BatchItem,
  type BatchOutcome,
  type BatchRun,
  type BatchTimes,
  batchedCall,
  itemOperations,
  type VendorBatch,
  VendorBatches,
} from '../batches/vendor-batches.ts'
import { asList, asObject, asText } from '../request-fields.ts'
import { credentialOf, fileReply, RefusedCall, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { ANTHROPIC_ERRORS, ANTHROPIC_HEADERS, anthropicOperation, refuseAnthropic } from './anthropic-request.ts'

type Batch = VendorBatch<null>

const ROOT = '/v1/messages/batches'
const CUSTOM_ID = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_REQUESTS = 100_000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Anthropic: `/v1/messages/batches`, with the batches of one sandbox (Anthropic API reference, "Message Batches"). Each request is
 * answered like a single call, and results are in another order than the requests.
 */
export function anthropicBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const batches = new VendorBatches<null>(run, times)
  const found = (call: SandboxCall, id: string, nowMs: number): Batch => {
    const batch = batches.find(id, credentialOf(call), nowMs)
    if (batch === undefined)
      throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `No message batch with the id ${id} was found.`))
    return batch
  }
  const submit = anthropicOperation({
    operation: 'batches',
    post: ROOT,
    json(call, { nowMs }) {
      const id = `msgbatch_01${randomUUID().replaceAll('-', '').slice(0, 22)}`
      const items = checkedItems(call)
      const batch = { id, apiKey: credentialOf(call), facts: null, items, lifeMs: DAY_MS }
      return batchObject(batches.add(batch, nowMs), call)
    },
  })
  const results = anthropicOperation({
    operation: 'batch-results',
    get: /^\/v1\/messages\/batches\/([^/]+)\/results$/,
    answer(call, { nowMs }, _request, [id = '']) {
      const { endedMs, items, outcomes } = found(call, id, nowMs)
      if (endedMs === undefined)
        throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `The message batch ${id} has no results yet.`))
      const lines = items.map(({ key }, index) => ({ custom_id: key, result: resultOf(outcomes[index]) }))
      // Newest first: their order says nothing.
      const text = lines.reverse().map((line) => `${JSON.stringify(line)}\n`)
      return fileReply('application/x-jsonl', text.join(''), ANTHROPIC_HEADERS)
    },
  })
  const others = itemOperations<Batch>({
    operation: anthropicOperation,
    name: 'batch',
    one: /^\/v1\/messages\/batches\/([^/]+)$/,
    found,
    shown: batchObject,
    list: {
      path: ROOT,
      query: ['after_id', 'limit', 20],
      items: (call, nowMs) => batches.list(credentialOf(call), nowMs),
      shown: (page, hasMore, call) => ({
        data: page.map((batch) => batchObject(batch, call)),
        has_more: hasMore,
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
      }),
    },
    cancel: {
      path: /^\/v1\/messages\/batches\/([^/]+)\/cancel$/,
      cancel({ id, endedMs }, call, nowMs) {
        if (endedMs !== undefined) refuseAnthropic(`Batch ${id} cannot be canceled because it has already ended.`)
        batches.cancel(id, nowMs)
        return batchObject(found(call, id, nowMs), call)
      },
    },
    delete({ id, endedMs }) {
      if (endedMs === undefined) refuseAnthropic(`Batch ${id} cannot be deleted while it is being processed.`)
      batches.delete(id)
      return { id, type: 'message_batch_deleted' }
    },
  })
  return [submit, results, ...others]
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
    return { key, call: batchedCall('/v1/messages', params, call) }
  })
}

function resultOf(outcome: BatchOutcome | undefined) {
  if (outcome?.kind === 'canceled' || outcome?.kind === 'expired') return { type: outcome.kind }
  if (outcome?.kind === 'answered' && outcome.status === 200) return { type: 'succeeded', message: outcome.body }
  const body = outcome?.body ?? { type: 'error', error: { type: 'api_error', message: 'Internal server error' } }
  return { type: 'errored', error: body }
}

function batchObject(batch: Batch, { headers: { host } }: SandboxCall): object {
  const { id, items, outcomes, state, createdMs, expiresMs, canceledMs, endedMs } = batch
  const hasEnded = endedMs !== undefined
  // Outcomes are counted at the end only.
  const types = hasEnded ? items.map((_, index) => resultOf(outcomes[index]).type) : []
  const count = (type: string): number => types.filter((one) => one === type).length
  const origin = host === undefined ? 'https://api.anthropic.com' : `http://${host}`
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : state === 'canceling' ? 'canceling' : 'in_progress',
    request_counts: {
      processing: hasEnded ? 0 : items.length,
      succeeded: count('succeeded'),
      errored: count('errored'),
      canceled: count('canceled'),
      expired: count('expired'),
    },
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
