import { type ExactMembers, exactJsonText, parseExactJson } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { NativeBatches, NativeCall, NativeReport, NativeResult, WireAnswer } from '../vendor.ts'
import { keyHeadersFor, type MessagesAddress } from './chat-to-wire.ts'

/** Statuses of the errors of single calls, by type (Anthropic, "Errors"). Results of batches have no status. */
const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

const BEGIN = '{"requests":['
const END = ']}'

/**
 * Batches of the Messages API (Anthropic API reference, "Message Batches"): the creation carries the requests, and results arrive
 * in any order. A batch has no name, so it cannot be found again if its creation got no answer. Results are read at the vendor's
 * own address rather than the one in the batch, so that the key is sent nowhere else.
 */
export function messageBatches(address: MessagesAddress): NativeBatches {
  const root = `${address.path}/batches`
  const headers = (apiKey: string): string[] => [
    ...keyHeadersFor(address, apiKey),
    'anthropic-version',
    address.version,
    'accept-encoding',
    'identity',
  ]
  const call = (method: NativeCall['method'], path: string, apiKey: string): NativeCall => ({
    method,
    path: `${root}/${path}`,
    headers: headers(apiKey),
    body: null,
  })
  return {
    // 256 MB of a body, and 32 MB of a request.
    limits: { maxRequests: 100_000, maxBytes: 256_000_000 - BEGIN.length - END.length, maxLineBytes: 32_000_000 },
    // These headers apply to a whole batch.
    takes: ({ path, headers: given }) =>
      path === address.path &&
      headerOf(given, 'anthropic-beta') === undefined &&
      headerOf(given, 'anthropic-version') === address.version,
    line: ({ customId, body }) => `{"custom_id":${JSON.stringify(customId)},"params":${body}}`,
    create: (_input, apiKey) => ({
      method: 'POST',
      path: root,
      headers: [...headers(apiKey), 'content-type', 'application/json'],
      body: { before: BEGIN, between: ',', after: END },
    }),
    created: (answer) => batchFrom(answer)?.id,
    read: (batchId, apiKey) => call('GET', encodeURIComponent(batchId), apiKey),
    report,
    results: (batchId, apiKey) => call('GET', `${encodeURIComponent(batchId)}/results`, apiKey),
    result,
    cancel: (batchId, apiKey) => call('POST', `${encodeURIComponent(batchId)}/cancel`, apiKey),
    remove: ({ batchId }, apiKey) =>
      batchId === undefined ? [] : [call('DELETE', encodeURIComponent(batchId), apiKey)],
  }
}

/** The value of a header in a flat list; names are in lower case. */
function headerOf(headers: readonly string[], name: string): string | undefined {
  const position = headers.findIndex((text, index) => index % 2 === 0 && text === name)
  return position === -1 ? undefined : headers[position + 1]
}

interface MessageBatch {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
}

function batchFrom({ body }: WireAnswer): MessageBatch | undefined {
  const fields = parseVendorJson(new TextDecoder().decode(body))
  if (!isJsonObject(fields) || fields['type'] !== 'message_batch') return undefined
  const { id } = fields
  return typeof id === 'string' && id !== '' ? { id, fields } : undefined
}

function report(answer: WireAnswer): NativeReport | undefined {
  const batch = batchFrom(answer)
  if (batch === undefined) return undefined
  const { processing_status: status, results_url: resultsUrl, cancel_initiated_at: cancelledAt } = batch.fields
  if (typeof status !== 'string') return undefined
  const counts = isJsonObject(batch.fields['request_counts']) ? batch.fields['request_counts'] : {}
  const hasEnded = status === 'ended'
  return {
    state: hasEnded ? 'ended' : 'running',
    isExpired: hasEnded && Number(counts['expired'] ?? 0) > 0,
    isCancelled: hasEnded && typeof cancelledAt === 'string',
    // Without an address they are archived, and cannot be had.
    results: hasEnded && typeof resultsUrl === 'string' ? [batch.id] : [],
    failure: undefined,
  }
}

/** Arguments of tools have the vendor's digits. */
const EXACT: ExactMembers = new Map([['input', 'text']])

function result(line: string): NativeResult | undefined {
  const entry = parseExactJson(line, EXACT)
  const { custom_id: customId, result: outcome } = isJsonObject(entry) ? entry : {}
  if (typeof customId !== 'string' || !isJsonObject(outcome)) return undefined
  switch (outcome['type']) {
    case 'succeeded':
      return isJsonObject(outcome['message'])
        ? { customId, kind: 'answered', status: 200, body: exactJsonText(outcome['message']) }
        : undefined
    case 'errored':
      return { customId, kind: 'answered', ...failureFrom(outcome['error']) }
    case 'expired':
      return { customId, kind: 'expired' }
    case 'canceled':
      return { customId, kind: 'cancelled' }
    default:
      return undefined
  }
}

/** The answer that a single call would have had. */
function failureFrom(given: unknown): { readonly status: number; readonly body: string } {
  const outer = isJsonObject(given) ? given : {}
  // The error itself, or an answer around it.
  const inner = isJsonObject(outer['error']) ? outer['error'] : outer
  const body = JSON.stringify({ type: 'error', error: inner })
  return { status: STATUSES.get(inner['type']) ?? 500, body }
}
