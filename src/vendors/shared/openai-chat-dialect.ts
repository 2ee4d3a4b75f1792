import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { VendorFailure } from '../vendor.ts'
import type { FieldRules } from './field-rules.ts'

/** Mends the chunks of one streamed answer, in order. Holds what it must remember between them. */
export interface ChunkRepair {
  /** Edits a parsed chunk in place; true when something was changed. Called for chunks that carry tool calls. */
  mend(chunk: Record<string, unknown>): boolean
}

/** The differences between servers of OpenAI's chat completions dialect. */
export interface OpenAIChatDialect {
  /** Path below the vendor's origin. */
  readonly path: string
  /** The field table for a model, by the vendor's own id. */
  readonly rulesFor: (upstream: string) => FieldRules<ChatRequest>
  /** For servers whose streamed tool calls need repair; one for each answer. */
  readonly chunkRepair?: (() => ChunkRepair) | undefined
  /** Does a model, by the vendor's own id, reason unseen for this request? Absent: its reasoning is shown. */
  readonly reasonsUnseen?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** Reads an error envelope that came inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** True for a JSON object that is an error and not a chunk or completion, whatever its status. */
export function isErrorEnvelope(body: Record<string, unknown>): boolean {
  if (body['error'] !== undefined && body['error'] !== null) return true
  return !Array.isArray(body['choices']) && typeof body['code'] === 'string' && typeof body['message'] === 'string'
}
