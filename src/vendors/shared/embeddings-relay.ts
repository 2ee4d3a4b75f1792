import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import type { RelayedBody, VendorCall } from '../vendor.ts'
import { encodeVector, inputCount } from './embedding-vectors.ts'
import { embeddingsUsage, readEmbeddings } from './embeddings-from-wire.ts'
import { type EmbeddingsShell, embeddingsShell } from './embeddings-shell.ts'
import { joinChunks } from './json-bytes.ts'

/**
 * Relays an embedding answer: the vectors' bytes go through unread, and what stands around them is written anew with the
 * caller's model id and full usage. An answer that cannot be taken apart so, or whose vectors are not in the encoding
 * that was asked for, is read as a whole. Undefined when it is not an embedding list.
 */
export function relayEmbeddings(
  chunks: readonly Uint8Array[],
  call: VendorCall<EmbeddingsRequest>,
): RelayedBody | undefined {
  const encoding = call.request.encoding_format === 'base64' ? 'base64' : 'float'
  const shell = embeddingsShell(chunks)
  if (shell === undefined || shell.encoding !== encoding || shell.count !== inputCount(call.request.input)) {
    return rebuilt(chunks, call, encoding)
  }
  const usage = embeddingsUsage(shell.members['usage'])
  if (isReady(shell, call)) return { chunks, usage }
  const { object: _object, model: _model, usage: wireUsage, ...others } = shell.members
  const tail = JSON.stringify({ model: call.publicModel, ...usageMember(wireUsage), ...others })
  return {
    chunks: [Buffer.from('{"object":"list","data":['), ...shell.vectors, Buffer.from(`,${tail.slice(1)}`)],
    usage,
  }
}

function rebuilt(
  chunks: readonly Uint8Array[],
  call: VendorCall<EmbeddingsRequest>,
  encoding: 'float' | 'base64',
): RelayedBody | undefined {
  const result = readEmbeddings(joinChunks(chunks).toString('utf8'), call)
  if (result === undefined) return undefined
  const { inputTokens } = result.usage ?? {}
  const body = {
    object: 'list',
    data: result.vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: encodeVector(vector, encoding),
    })),
    model: call.publicModel,
    ...(inputTokens === undefined ? {} : { usage: { prompt_tokens: inputTokens, total_tokens: inputTokens } }),
  }
  return { chunks: [Buffer.from(JSON.stringify(body))], usage: result.usage }
}

/** True when the answer is already what the caller should read. */
function isReady({ members }: EmbeddingsShell, call: VendorCall<EmbeddingsRequest>): boolean {
  const usage = members['usage']
  if (members['model'] !== call.publicModel || members['object'] !== 'list') return false
  return isJsonObject(usage) && usage['prompt_tokens'] !== undefined && usage['total_tokens'] !== undefined
}

/** Usage with the field that some vendors leave out; without a total nothing is made up. */
function usageMember(wire: unknown): { usage?: Record<string, unknown> } {
  if (!isJsonObject(wire)) return {}
  const total = wire['total_tokens'] ?? wire['prompt_tokens']
  return { usage: { prompt_tokens: wire['prompt_tokens'] ?? total, total_tokens: total } }
}
