import type { ScriptedTurn } from './model/chat-turn.ts'

/** One call as the stand-ins received it. */
export interface SandboxCall {
  /**
   * `openai`, `anthropic`, `gemini`, `dashscope`, `voyage`, `cohere`, `presets`, `azure`, `vertex`, `amazon-bedrock`; `files` for
   * linked files; `receiver` for webhooks of the gateway; `unknown` for a path of no vendor.
   */
  readonly vendor: string
  /**
   * `chat`, `completions`, `responses`, `count-tokens`, `models`, `embeddings`, `rerank`, `moderations`, `images`, `image-edits`, `transcriptions`, `videos`, `video-task`, `video-list`,
   * `video-cancel`; `batches` (submission), `batch` (a look at one), `batch-list`, `batch-results`, `batch-cancel`, `batch-delete`; `files` (upload), `file`, `file-list`,
   * `file-content`, `file-delete`; `token`; `picture` and `video` for files; `webhook`; `unknown` for a path that no vendor has.
   */
  readonly operation: string
  /** The vendor's own model id, from the body, the form or the path, or `undefined` if the call names none. */
  readonly model: string | undefined
  /**
   * Id of the key in the gateway's events and reports. Undefined without a key, and for the clouds `vertex` and `amazon-bedrock`.
   * It differs for a vendor with your own id.
   */
  readonly credentialId: string | undefined
  /** The vendor's id of the batch that contains the request, or `undefined` for a single call. */
  readonly batchId?: string | undefined
  readonly method: string
  /** Path without the query. */
  readonly path: string
  /** Query without the question mark, or an empty string. */
  readonly query: string
  /** Headers with lower-case names. Repeated headers are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON, or `undefined` if the body is empty or not JSON, such as a form. */
  readonly body: unknown
  /** The original body. */
  readonly bytes: Uint8Array
}

/** The parts of a call from the network. */
export type IncomingCall = Omit<SandboxCall, 'vendor' | 'operation' | 'model' | 'credentialId' | 'batchId' | 'body'>

/** Returns the credential of a call, from the header or query field that a vendor reads, or an empty string. */
export function credentialOf(call: Pick<SandboxCall, 'headers' | 'query'>): string {
  const bearer = /^Bearer\s+(.+)$/i.exec(call.headers['authorization'] ?? '')?.[1]
  return (
    bearer ??
    call.headers['x-api-key'] ??
    call.headers['api-key'] ??
    call.headers['x-goog-api-key'] ??
    new URLSearchParams(call.query).get('key') ??
    ''
  ).trim()
}

/** A part of a body: text, or bytes. */
export type ReplyPiece = string | Uint8Array

/** An answer before any fault changes its delivery. */
export interface SandboxReply {
  readonly status: number
  /** Flat list of name, value, name, value, with lower-case names. */
  readonly headers: readonly string[]
  /** The body. A stream has one entry per event, and the last one marks its end for the client. */
  readonly pieces: readonly ReplyPiece[]
  readonly streamed: boolean
  /** A content event that an endless stream repeats. */
  readonly filler?: string
}

/** Inputs of an operation other than the call. */
export interface AnswerContext {
  readonly nowMs: number
  /** 24 hexadecimal digits derived from the body, so that equal calls get equal answers. */
  readonly id: string
  /** Whether the vendor's content filter blocks the answer. */
  readonly blocked: boolean
  /** Output of the model, if a test has set it. */
  readonly script?: ScriptedTurn | undefined
  /** Passes a usage object through the `usage` and `no-usage` faults. Returns `undefined` if it must be omitted. */
  usage<Report extends object>(report: Report): Report | undefined
}

/** A vendor's error format. Statuses are those of the HTTP answer. */
export interface VendorErrors {
  /** Returns the vendor's body for a status, with its usual text unless a message is given. */
  status(status: number, message?: string, retryAfterSeconds?: number): SandboxReply
  /** Error for an operator's account without quota or money. */
  quota(): SandboxReply
  /** Error for an unknown credential. */
  badKey(): SandboxReply
  /** An error inside a stream that began with 200. */
  streamEvent(): ReplyPiece
}

/** One operation of one vendor: a separate file, listed in `operations.ts`. */
export interface SandboxOperation {
  readonly vendor: string
  readonly operation: string
  readonly errors: VendorErrors
  /**
   * False for calls without a JSON body, such as a form, or a file download: `answer` then gets calls whose `body` is undefined.
   * Default true: such calls get the vendor's 400.
   */
  readonly needsJson?: boolean
  /** Whether the operation handles this call. Called in the order of the list. */
  matches(call: Pick<SandboxCall, 'method' | 'path' | 'headers' | 'body'>): boolean
  /**
   * Returns the text to search for fault marks. Never throws, whatever the body.
   * @param call The call itself, for bodies that are not JSON.
   */
  promptText(body: unknown, call: IncomingCall): string
  /** @throws RefusedCall if the vendor would answer with an error. */
  answer(call: SandboxCall, context: AnswerContext): SandboxReply
}

/** An error answer of the vendor. */
export class RefusedCall extends Error {
  override readonly name = 'RefusedCall'
  readonly reply: SandboxReply

  constructor(reply: SandboxReply) {
    super(`the stand-in refuses the call with status ${reply.status}`)
    this.reply = reply
  }
}

/** Returns a whole JSON answer. */
export function jsonReply(status: number, headers: readonly string[], value: unknown, indent?: number): SandboxReply {
  const body = JSON.stringify(value, null, indent)
  return { status, headers: ['content-type', 'application/json', ...headers], pieces: [body], streamed: false }
}

/** Returns a whole answer of another content type: an image, a video, audio. */
export function fileReply(contentType: string, bytes: Uint8Array, headers: readonly string[] = []): SandboxReply {
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces: [bytes], streamed: false }
}

/** Returns a stream of server-sent events. */
export function streamReply(headers: readonly string[], pieces: readonly string[], filler: string): SandboxReply {
  const contentType = 'text/event-stream; charset=utf-8'
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces, streamed: true, filler }
}

/** Rejects a call without a bearer token. Any token is accepted. */
export function checkBearer(call: SandboxCall, errors: VendorErrors): void {
  const hasBearer = call.headers['authorization'] !== undefined && credentialOf(call) !== ''
  if (!hasBearer) throw new RefusedCall(errors.badKey())
}

/** Rejects a call without a key in `api-key` and without a bearer token. Any is accepted. */
export function checkApiKey(call: SandboxCall, errors: VendorErrors): void {
  if (credentialOf(call) === '') throw new RefusedCall(errors.badKey())
}
