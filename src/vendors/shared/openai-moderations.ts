import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { type ModerationRequest, partsOf } from '../../endpoints/moderations/moderations-endpoint.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import { editMembers, replaceString } from '../../wire/json-edits.ts'
import type { AnswerBody, PassThroughOperation, VendorCall, WireRequest } from '../vendor.ts'
import { tellsPurchasePrice } from './vendor-cost.ts'
import { bearerHeaders, type KeyHeaders } from './vendor-options.ts'

/** The differences between servers of OpenAI's moderation dialect. */
export interface OpenAIModerationsDialect {
  /** Path below the vendor's origin. */
  readonly path: string
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** False for servers that read only texts. By default, parts with images are sent unchanged. */
  readonly takesParts?: boolean | undefined
}

/** Creates moderations for a server of OpenAI's dialect. Requests and answers pass with another model id. */
export function openaiModerations(dialect: OpenAIModerationsDialect): PassThroughOperation<ModerationRequest> {
  return { toWire: (call) => toWire(call, dialect), fromWire: passModeration }
}

function toWire(call: VendorCall<ModerationRequest>, dialect: OpenAIModerationsDialect): WireRequest {
  const { request, bytes, model, apiKey } = call
  if (dialect.takesParts === false && partsOf(request) !== undefined) {
    const message = 'input: this model accepts a string or a list of strings, not parts'
    throw new GatewayError('unsupported_parameter', { message, param: 'input' })
  }
  const edited =
    bytes === undefined ? undefined : replaceString(asBuffer(bytes), 'model', request.model, model.upstream)
  return {
    path: dialect.path,
    headers: (dialect.headers ?? bearerHeaders)(apiKey, 'application/json'),
    body: edited ?? JSON.stringify({ ...request, model: model.upstream }),
    dropped: [],
  }
}

/** Returns `undefined` unless each text has its result: a missing result would look harmless. */
function passModeration(chunks: readonly Uint8Array[], call: VendorCall<ModerationRequest>): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const body = parseVendorJson(bytes.toString('utf8'))
  if (!isJsonObject(body) || !hasResults(body['results'], call.request)) return undefined
  const usage = usageOf(body['usage'])
  const changes = new Map<string, string | undefined>([['model', JSON.stringify(call.publicModel)]])
  if (call.isBilled === true && tellsPurchasePrice(body['usage'])) changes.set('usage', undefined)
  const edited = editMembers(bytes, changes)?.apply(bytes)
  if (edited !== undefined) return { chunks: [edited], usage }
  const { usage: told, ...members } = body
  const kept = changes.has('usage') || told === undefined ? {} : { usage: told }
  return { chunks: [Buffer.from(JSON.stringify({ ...members, model: call.publicModel, ...kept }))], usage }
}

function hasResults(results: unknown, { input }: ModerationRequest): boolean {
  if (!Array.isArray(results) || results.length === 0 || !results.every(isResult)) return false
  if (typeof input === 'string') return results.length === 1
  return partsOf({ input }) !== undefined || results.length === input.length
}

function isResult(result: unknown): boolean {
  return isJsonObject(result) && isJsonObject(result['categories'])
}

/** OpenAI reports no usage. */
function usageOf(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const tokens = typeof value['prompt_tokens'] === 'number' ? value['prompt_tokens'] : value['total_tokens']
  return typeof tokens === 'number' ? { inputTokens: tokens, outputTokens: 0 } : undefined
}
