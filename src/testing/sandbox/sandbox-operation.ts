import type { ScriptedTurn } from './model/chat-turn.ts'
import { asObject, type Fields } from './request-fields.ts'

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

/** One operation of one vendor, as the server of the stand-ins calls it. */
export interface SandboxOperation {
  readonly vendor: string
  readonly operation: string
  readonly errors: VendorErrors
  /** Whether calls without a JSON body get the vendor's 400. Default true. */
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

/** Facts that the operations of one vendor share. */
export interface VendorFacts {
  readonly vendor: string
  readonly errors: VendorErrors
  /** Headers of JSON answers. Default: none. */
  readonly headers?: readonly string[]
  /** Spaces by which JSON answers are indented. Default 0. */
  readonly indent?: number
  /** Rejects a call without the vendor's credential, before anything else. Any credential is accepted. */
  access?(call: SandboxCall, nowMs: number): void
}

/** Inputs of an answer: the call, its context, its JSON object, and what the groups of the path matched. */
type AnswerInputs = [call: SandboxCall, context: AnswerContext, request: Fields, groups: readonly string[]]

/** A row of a vendor's table of operations. One of `get`, `post` and `delete` has the path, or a pattern for the whole path. */
export interface OperationRow {
  readonly operation: string
  readonly get?: string | RegExp
  readonly post?: string | RegExp
  readonly delete?: string | RegExp
  /** Further condition for a call of this path. */
  when?(call: Pick<SandboxCall, 'path' | 'headers' | 'body'>): boolean
  /** Whether calls without a JSON body get the vendor's 400. Default: those of `post`. */
  readonly needsJson?: boolean
  /** Returns the text to search for fault marks, whatever the body. Default: none. */
  prompt?(request: Fields, call: IncomingCall): string
  /** Returns the JSON of a whole answer. */
  json?(...inputs: AnswerInputs): unknown
  /** Returns an answer of any other form. */
  answer?(...inputs: AnswerInputs): SandboxReply
}

/** Returns a function that turns rows of a vendor's table into operations. */
export function vendorOperations({ vendor, errors, headers = [], indent, access }: VendorFacts) {
  return (row: OperationRow): SandboxOperation => {
    const method = row.post !== undefined ? 'POST' : row.get !== undefined ? 'GET' : 'DELETE'
    const route = row.post ?? row.get ?? row.delete ?? ''
    const groupsOf = (path: string): readonly string[] | undefined => {
      if (typeof route === 'string') return path === route ? [] : undefined
      return route.exec(path)?.slice(1)
    }
    return {
      vendor,
      operation: row.operation,
      errors,
      needsJson: row.needsJson ?? method === 'POST',
      matches: (call) => call.method === method && groupsOf(call.path) !== undefined && row.when?.(call) !== false,
      promptText: (body, call) => row.prompt?.(asObject(body), call) ?? '',
      answer(call, context) {
        access?.(call, context.nowMs)
        const inputs: AnswerInputs = [call, context, asObject(call.body), groupsOf(call.path) ?? []]
        return row.answer?.(...inputs) ?? jsonReply(200, headers, row.json?.(...inputs), indent)
      },
    }
  }
}

/** Makes the operations of a vendor from its rows. */
export type OperationMaker = ReturnType<typeof vendorOperations>

/** The usual text of an error, and facts such as its code. */
type ErrorRow = readonly [text: string, ...facts: (string | null)[]]

/**
 * Creates the errors of a vendor from a table by status. Other statuses are written like the rows `5xx` and `4xx`, or 500 and 400.
 * @param write Writes an error. A wait is added as header `retry-after`, unless the vendor's own form has it.
 */
export function vendorErrors(
  usual: Readonly<Record<string, ErrorRow>>,
  write: (status: number, text: string, facts: readonly (string | null)[], waitSeconds?: number) => SandboxReply,
  others: Pick<VendorErrors, 'quota'> & Partial<VendorErrors> & { readonly waitsInBody?: boolean },
): VendorErrors {
  const status: VendorErrors['status'] = (code, message, waitSeconds) => {
    const kind = code >= 500 ? 5 : 4
    const [text = '', ...facts] = usual[code] ?? usual[`${kind}xx`] ?? usual[`${kind}00`] ?? []
    const reply = write(code, message ?? text, facts, waitSeconds)
    if (waitSeconds === undefined || others.waitsInBody === true) return reply
    return { ...reply, headers: [...reply.headers, 'retry-after', String(waitSeconds)] }
  }
  return { status, badKey: () => status(401), streamEvent: () => '', ...others }
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

/** Throws the vendor's error of a status, 400 by default. */
export type Refuse = (message: string, status?: number) => never

/** Returns a function that rejects calls in the format of a vendor. */
export function refusals(errors: VendorErrors): Refuse {
  return (message, status = 400) => {
    throw new RefusedCall(errors.status(status, message))
  }
}

/** Returns a flat list of header names and values from lines such as `server: uvicorn`. */
export function headerList(lines: string): readonly string[] {
  return lines
    .trim()
    .split(/\n\s*/)
    .flatMap((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)])
}

/** Returns a whole JSON answer. */
export function jsonReply(status: number, headers: readonly string[], value: unknown, indent?: number): SandboxReply {
  const body = JSON.stringify(value, null, indent)
  return { status, headers: ['content-type', 'application/json', ...headers], pieces: [body], streamed: false }
}

/** Returns a whole answer of another content type: an image, a video, audio. */
export function fileReply(contentType: string, content: ReplyPiece, headers: readonly string[] = []): SandboxReply {
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces: [content], streamed: false }
}

/** Returns a stream of server-sent events. */
export function streamReply(headers: readonly string[], pieces: readonly string[], filler: string): SandboxReply {
  const contentType = 'text/event-stream; charset=utf-8'
  return { status: 200, headers: ['content-type', contentType, ...headers], pieces, streamed: true, filler }
}

/** Returns a server-sent event of JSON, with a name if one is given. */
export function eventText(value: unknown, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`
}

/** Returns a check for a bearer token. */
export function bearerAccess(errors: VendorErrors): (call: SandboxCall) => void {
  return (call) => {
    const hasBearer = call.headers['authorization'] !== undefined && credentialOf(call) !== ''
    if (!hasBearer) throw new RefusedCall(errors.badKey())
  }
}

/** Returns a check for a key in any header or a bearer token. */
export function keyAccess(errors: VendorErrors): (call: SandboxCall) => void {
  return (call) => {
    if (credentialOf(call) === '') throw new RefusedCall(errors.badKey())
  }
}
