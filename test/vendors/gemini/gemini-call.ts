import { defineModel } from '../../../src/catalog/model.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import type { VendorCall, WireAnswer } from '../../../src/vendors/vendor.ts'

/** 2026-11-20T12:00:00Z. */
export const NOW_MS = 1_795_176_000_000

/** The vendor under test. */
export const vendor = gemini({ apiKey: 'test-key-0001' })

/** A chat call of one user message, on gemini-2.5-flash unless told. */
export function chatCall(
  fields: Partial<ChatRequest> = {},
  options: { upstream?: string; stream?: boolean } = {},
): VendorCall<ChatRequest> {
  const upstream = options.upstream ?? 'gemini-2.5-flash'
  return {
    request: { model: 'gmn-test', messages: [{ role: 'user', content: 'Hello' }], ...fields },
    bytes: undefined,
    model: defineModel({ id: 'gmn-test', kind: 'chat', vendor: 'gemini', upstream }),
    publicModel: 'gmn-test',
    apiKey: 'test-key-0001',
    stream: options.stream ?? false,
    nowMs: NOW_MS,
  }
}

/** A call for embeddings. */
export function embeddingsCall(
  fields: Partial<EmbeddingsRequest>,
  upstream = 'gemini-embedding-001',
): VendorCall<EmbeddingsRequest> {
  return {
    request: { model: 'gmn-embedding', input: 'red', ...fields },
    bytes: undefined,
    model: defineModel({ id: 'gmn-embedding', kind: 'embedding', vendor: 'gemini', upstream }),
    publicModel: 'gmn-embedding',
    apiKey: 'test-key-0001',
    stream: false,
    nowMs: NOW_MS,
  }
}

/** The request body that the vendor would get for a chat. */
export function sentBody(call: VendorCall<ChatRequest>): Record<string, unknown> {
  return JSON.parse(String(vendor.chat?.toWire(call).body)) as Record<string, unknown>
}

/** An answer of the vendor with a JSON body. */
export function jsonAnswer(body: unknown, status = 200, headers: WireAnswer['headers'] = {}): WireAnswer {
  return { status, headers, body: new TextEncoder().encode(JSON.stringify(body)) }
}
