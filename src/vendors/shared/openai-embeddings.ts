import { Buffer } from 'node:buffer'
import type { EmbeddingsRequest, EmbeddingVector } from '../../endpoints/embeddings/embeddings-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import type { EmbeddingsOperation, VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders, type KeyHeaders } from './bearer-headers.ts'
import { passEmbeddings, readEmbeddings } from './embeddings-answer.ts'
import { applyFieldRules, type FieldRules } from './field-rules.ts'
import { type OperationPath, pathFor } from './openai-chat-dialect.ts'

/** The differences between servers of OpenAI's embeddings dialect. */
export interface OpenAIEmbeddingsDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  readonly maxInputs: number
  readonly maxTokens?: EmbeddingsOperation['maxTokens']
  readonly takesTokens: boolean
  readonly rules: FieldRules<EmbeddingsRequest>
  /** Whether the vendor can encode base64. If not, the gateway encodes for callers who request it. */
  readonly givesBase64: boolean
  /**
   * Whether to request base64 for translated answers: reading it costs an eighth of reading numbers. False for servers that may not
   * support it, and for requests whose vectors are not floats in base64.
   */
  readonly prefersBase64: boolean | ((request: EmbeddingsRequest) => boolean)
  /**
   * Whether vectors are always base64 of signed bytes. Then no encoding is requested, and callers get the bytes as numbers. Their
   * length is not 1.
   */
  readonly givesSignedBytes?: boolean | undefined
}

/** Creates embeddings for a server of OpenAI's dialect. Answers to a caller's own bytes pass through, all others are translated. */
export function openaiEmbeddings(dialect: OpenAIEmbeddingsDialect): EmbeddingsOperation {
  const passes = (call: VendorCall<EmbeddingsRequest>): boolean =>
    call.bytes !== undefined &&
    dialect.givesSignedBytes !== true &&
    (dialect.givesBase64 || call.request.encoding_format !== 'base64')
  return {
    maxInputs: dialect.maxInputs,
    maxTokens: dialect.maxTokens,
    takesTokens: dialect.takesTokens,
    toWire: (call) => toWire(call, dialect, passes(call)),
    fromWire(answer, call) {
      const text = asBuffer(answer.body).toString('utf8')
      if (dialect.givesSignedBytes !== true) return readEmbeddings(text, call)
      const result = readEmbeddings(text, call, false)
      return result && { ...result, vectors: result.vectors.map(signedBytes) }
    },
    passThrough: { applies: passes, fromWire: passEmbeddings },
  }
}

function toWire(call: VendorCall<EmbeddingsRequest>, dialect: OpenAIEmbeddingsDialect, passes: boolean): WireRequest {
  const asked = passes ? call.request : encodedRequest(call.request, dialect)
  const { body: ruled, dropped } = applyFieldRules(asked, dialect.rules)
  const { upstream } = call.model
  const edited =
    ruled === undefined && passes && call.bytes !== undefined
      ? replaceString(asBuffer(call.bytes), 'model', call.request.model, upstream)
      : undefined
  return {
    path: pathFor(dialect.path, upstream),
    headers: (dialect.headers ?? bearerHeaders)(call.apiKey, 'application/json'),
    body: edited ?? JSON.stringify({ ...(ruled ?? asked), model: upstream }),
    dropped,
  }
}

/** Returns the request for an answer that will be translated. */
function encodedRequest(
  request: EmbeddingsRequest,
  { givesSignedBytes, prefersBase64 }: OpenAIEmbeddingsDialect,
): EmbeddingsRequest {
  if (typeof prefersBase64 === 'boolean' ? prefersBase64 : prefersBase64(request))
    return { ...request, encoding_format: 'base64' }
  if (givesSignedBytes !== true) return request
  const { encoding_format: _own, ...rest } = request
  return rest as EmbeddingsRequest
}

function signedBytes(vector: EmbeddingVector): EmbeddingVector {
  return typeof vector === 'string' ? Array.from(Int8Array.from(Buffer.from(vector, 'base64'))) : vector
}
