import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { defineModel } from '../../../src/catalog/model.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import type { ModerationRequest } from '../../../src/endpoints/moderations/moderations-endpoint.ts'
import type { VendorCall, WireAnswer } from '../../../src/vendors/vendor.ts'

/** 2026-11-20T10:00:00Z, the time of all calls in these tests. */
export const NOW_MS = 1_795_168_800_000

interface CallOptions {
  readonly upstream?: string
  readonly apiKey?: string
}

/** Returns a call whose request arrived as these bytes. */
export function callFromText<Request extends ChatRequest | EmbeddingsRequest | ModerationRequest>(
  text: string,
  options: CallOptions = {},
): VendorCall<Request> {
  return { ...callFromRequest(JSON.parse(text) as Request, options), bytes: Buffer.from(text) }
}

/** Returns a call whose request another endpoint built, so that it has no bytes in the vendor's dialect. */
export function callFromRequest<Request extends { readonly model: string; readonly stream?: unknown }>(
  request: Request,
  options: CallOptions = {},
): VendorCall<Request> {
  return {
    request,
    bytes: undefined,
    model: defineModel({
      id: request.model,
      kind: 'chat',
      vendor: 'any',
      ...(options.upstream === undefined ? {} : { upstream: options.upstream }),
    }),
    publicModel: request.model,
    apiKey: options.apiKey ?? 'test-key-0123456789',
    stream: request.stream === true,
    nowMs: NOW_MS,
  }
}

/** Returns a vendor's answer with a JSON or text body. */
export function wireAnswer(
  body: unknown,
  status = 200,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): WireAnswer {
  return { status, headers, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) }
}

/** Returns the bytes of a fixture next to the given test file. */
export function fixture(testFileUrl: string, name: string): Buffer {
  return readFileSync(new URL(`fixtures/${name}`, testFileUrl))
}

type Body = Uint8Array | string | readonly Uint8Array[]

/** Returns the text of relayed output, or of the body of a request. */
export function textOf(pieces: readonly (Body | undefined)[]): string {
  const bytes = pieces.flatMap((piece): Uint8Array[] => {
    if (piece === undefined) return []
    if (typeof piece === 'string') return [Buffer.from(piece)]
    return piece instanceof Uint8Array ? [piece] : [...piece]
  })
  return Buffer.concat(bytes).toString('utf8')
}

/** Returns the parsed body of a request. */
export function bodyOf(body: Body): Record<string, unknown> {
  return JSON.parse(textOf([body])) as Record<string, unknown>
}
