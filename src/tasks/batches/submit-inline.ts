import { DetailedError } from '../../core/detailed-error.ts'
import { GatewayError } from '../../core/errors.ts'
import { readExactCallerJson } from '../../core/exact-json.ts'
import { bodyPieces } from '../../core/exchange.ts'
import { isJsonObject, parseCallerJson } from '../../core/json.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { InlineBatches } from '../../endpoints/inline-batches.ts'
import { streamedClaimOf } from '../../pipeline/parse.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { type LineFault, TOO_LONG, type WrittenRequest } from './batch-lines.ts'
import { requireJson, webhookUrlOf } from './batch-requests.ts'
import type { BatchRequest } from './file-requests.ts'
import { ListSplitter } from './split-list.ts'
import { type BatchSubmission, submitBatch } from './submit-batch.ts'

/** Maximum number of bytes of a submission outside of its requests. */
const REST_BYTES = 64 * 1024

/** Maximum number of faults in a message; its details list all of them. */
const MOST_TOLD = 20

const INVALID = 'invalid_batch_request'

/** Codes of faults that do not concern the body of a request. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([INVALID, 'duplicate_custom_id'])

/** Request about batches of an endpoint. */
export interface InlineBatchRequest extends BatchRequest {
  readonly endpoint: Endpoint
  readonly dialect: InlineBatches
}

/**
 * Submits the batch of a request: its body is split into the requests while it arrives.
 * @throws GatewayError as {@link submitBatch} does, `account_frozen`, `unsupported_media_type`, `body_too_large`, `invalid_json`,
 *   and `invalid_request` that lists every fault by the index of its request.
 */
export async function submitInline(
  context: PipelineContext,
  settings: BatchSettings,
  { request, requestId, principal, endpoint, dialect }: InlineBatchRequest,
): ReturnType<typeof submitBatch> {
  requireJson(request, principal)
  const claim = streamedClaimOf(context, request, { accountId: principal.accountId, requestId })
  const maxItemBytes = context.bodyLimitBytes
  const { listMember: member } = dialect
  const splitter = new ListSplitter({ member, maxItemBytes, maxRestBytes: REST_BYTES })
  let webhookUrl: unknown
  async function* requests(): BatchSubmission['requests'] {
    let line = 0
    for await (const piece of bodyPieces(request, settings.maxFileBytes)) {
      claim?.add(piece)
      for (const item of splitter.push(piece)) {
        yield { line, request: readItem(dialect, item, { line, maxBytes: maxItemBytes }) }
        line++
      }
    }
    webhookUrl = readRest(dialect, splitter.rest())
  }
  return await submitBatch(context, settings, {
    endpoint,
    principal,
    requestId,
    idPrefix: dialect.idPrefix,
    inputFileId: null,
    metadata: null,
    requests: requests(),
    rest: async () => ({
      claim: claim?.end(),
      webhookUrl: await webhookUrlOf(context, principal.accountId, webhookUrl),
    }),
    refusal: (faults) => refusalOf(dialect, faults),
  })
}

/** @throws GatewayError `invalid_json`: one malformed item makes the whole text malformed. */
function readItem(
  dialect: InlineBatches,
  item: Uint8Array | typeof TOO_LONG,
  { line, maxBytes }: { readonly line: number; readonly maxBytes: number },
): WrittenRequest | LineFault {
  const fault = (code: string, param: string | null, message: string): LineFault => ({ code, line, message, param })
  if (item === TOO_LONG) return fault('request_too_large', null, `has more than ${maxBytes} bytes`)
  let value: unknown
  try {
    value = readExactCallerJson(item, new Map([[dialect.bodyMember, 'text']])).value
  } catch (cause) {
    const error = GatewayError.from(cause)
    if (error.code === 'invalid_json') throw error
    return fault(error.publicCode, null, error.message)
  }
  const read = dialect.readRequest(value)
  return 'customId' in read ? read : fault(INVALID, read.param, read.reason)
}

/**
 * Returns the webhook address for the end of the batch.
 * @throws GatewayError `invalid_json`, and `invalid_request` for a body that has no list of requests or an unknown member.
 */
function readRest({ listMember }: InlineBatches, rest: Uint8Array): unknown {
  const body = parseCallerJson(rest)
  if (!isJsonObject(body)) throw new GatewayError('invalid_request', { message: 'The request body: expected object' })
  const { [listMember]: list, webhook_url: webhookUrl, ...others } = body
  if (!Array.isArray(list)) throw invalid(listMember, 'expected a list')
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(unknown.slice(0, 64), 'is not known here')
  return webhookUrl
}

/** One error for all faults, each by the index of its request, counted from 0. */
function refusalOf({ listMember, bodyMember }: InlineBatches, faults: readonly LineFault[]): GatewayError {
  const errors = faults.map(({ line, code, message, param }) => {
    const own = param === null ? message : message.replace(`${param}: `, '')
    const inside = param === null ? '' : OF_THE_REQUEST.has(code) ? `.${param}` : `.${bodyMember}.${param}`
    const place = line === null ? listMember : `${listMember}.${line}${inside}`
    return { index: line, code, param: place, message: own }
  })
  const told = errors.slice(0, MOST_TOLD).map(({ param, message }) => `${param}: ${message}`)
  if (errors.length > MOST_TOLD) told.push(`and ${errors.length - MOST_TOLD} more`)
  return new DetailedError('invalid_request', { message: told.join('; '), param: errors[0]!.param }, { errors })
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
