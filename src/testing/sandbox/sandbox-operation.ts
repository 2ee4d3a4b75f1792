import type { ScriptedTurn } from './model/scripted-turn.ts'

/** One call as the stand-ins received it. */
export interface SandboxCall {
  /**
   * `openai`, `anthropic`, `gemini`, `dashscope`, `voyage`, `cohere`, `presets`, `azure`, `vertex`, `amazon-bedrock`; `files` for what their answers link to; `receiver` for webhooks of the gateway; `unknown` for a path
   * that no vendor has.
   */
  readonly vendor: string
  /**
   * `chat`, `completions`, `responses`, `count-tokens`, `models`, `embeddings`, `rerank`, `moderations`, `images`, `image-edits`, `transcriptions`, `videos`, `video-task`, `video-list`,
   * `video-cancel`; `batches` (submission), `batch` (a look at one), `batch-list`, `batch-results`, `batch-cancel`, `batch-delete`; `files` (upload), `file`, `file-list`,
   * `file-content`, `file-delete`; `token`; `picture` and `video` for files; `webhook`; `unknown` for a path that no vendor has.
   */
  readonly operation: string
  /** The vendor's own id of the model, from the body, the form or the path; undefined when the call names none. */
  readonly model: string | undefined
  /**
   * The id by which the gateway's events and reports name the key; undefined without a key, and for the clouds `vertex` and
   * `amazon-bedrock`. For a vendor with an id of your own it differs.
   */
  readonly credentialId: string | undefined
  /** The vendor's id of the batch of which it is a request; undefined for a call by itself. */
  readonly batchId?: string | undefined
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** Without the question mark; empty when there is none. */
  readonly query: string
  /** Lower-case names; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON; undefined when the body is empty or no JSON, such as a form. */
  readonly body: unknown
  /** The original body. */
  readonly bytes: Uint8Array
}

/** The parts of a call from the network. */
export type IncomingCall = Omit<SandboxCall, 'vendor' | 'operation' | 'model' | 'credentialId' | 'batchId' | 'body'>

/** The credential of a call, in whichever header or query field a vendor reads it; empty when there is none. */
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

/** An answer before any fault has touched its delivery. */
export interface SandboxReply {
  readonly status: number
  /** Flat list: name, value, name, value; lower-case names. */
  readonly headers: readonly string[]
  /** The body. For a stream: one entry per event; the last one tells the client that the stream is complete. */
  readonly pieces: readonly ReplyPiece[]
  readonly streamed: boolean
  /** A content event that an endless stream repeats. */
  readonly filler?: string
}

/** The inputs of an operation besides the call. */
export interface AnswerContext {
  readonly nowMs: number
  /** 24 hexadecimal digits made from the body, so that equal calls get equal answers. */
  readonly id: string
  /** Apply the vendor's content filter. */
  readonly blocked: boolean
  /** What the model says, where a test has written it. */
  readonly script?: ScriptedTurn | undefined
  /** Passes a usage object through the `usage` and `no-usage` faults; undefined when it must be left out. */
  usage<Report extends object>(report: Report): Report | undefined
}

/** A vendor's error format. Statuses are those of the HTTP answer. */
export interface VendorErrors {
  /** The vendor's body for a status, with its usual text unless a message is given. */
  status(status: number, message?: string, retryAfterSeconds?: number): SandboxReply
  /** The operator's account is out of quota or money. */
  quota(): SandboxReply
  /** The vendor does not know the credential. */
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
   * False for calls without a JSON body, such as a form, or a file download: `answer` then gets calls whose `body` is
   * undefined. Default true: such calls are refused with the vendor's 400.
   */
  readonly needsJson?: boolean
  /** Is this call for me? Called in the order of the list. */
  matches(call: Pick<SandboxCall, 'method' | 'path' | 'headers' | 'body'>): boolean
  /**
   * The text in which fault marks are looked for. Never throws, whatever the body.
   * @param call The call itself, for bodies that are no JSON.
   */
  promptText(body: unknown, call: IncomingCall): string
  /**
   * @throws RefusedCall when the vendor would answer with an error.
   */
  answer(call: SandboxCall, context: AnswerContext): SandboxReply
}

/** The vendor answers with an error. */
export class RefusedCall extends Error {
  override readonly name = 'RefusedCall'
  readonly reply: SandboxReply

  constructor(reply: SandboxReply) {
    super(`the stand-in refuses the call with status ${reply.status}`)
    this.reply = reply
  }
}

/** A whole JSON answer. */
export function jsonReply(status: number, headers: readonly string[], value: unknown, indent?: number): SandboxReply {
  const body = JSON.stringify(value, null, indent)
  return { status, headers: ['content-type', 'application/json', ...headers], pieces: [body], streamed: false }
}

/** A whole answer of another content type: a picture, a video, sound. */
export function fileReply(contentType: string, bytes: Uint8Array, headers: readonly string[] = []): SandboxReply {
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces: [bytes], streamed: false }
}

/** A stream of server-sent events. */
export function streamReply(headers: readonly string[], pieces: readonly string[], filler: string): SandboxReply {
  const contentType = 'text/event-stream; charset=utf-8'
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces, streamed: true, filler }
}

/** Refuses a call without a bearer token; any token will do. */
export function checkBearer(call: SandboxCall, errors: VendorErrors): void {
  const hasBearer = call.headers['authorization'] !== undefined && credentialOf(call) !== ''
  if (!hasBearer) throw new RefusedCall(errors.badKey())
}

/** Refuses a call without a key in `api-key` and without a bearer token; any will do. */
export function checkApiKey(call: SandboxCall, errors: VendorErrors): void {
  if (credentialOf(call) === '') throw new RefusedCall(errors.badKey())
}
