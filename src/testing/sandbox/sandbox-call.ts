/** One call as the stand-ins received it. */
export interface SandboxCall {
  /**
   * `openai`, `anthropic`, `gemini`, `dashscope`, `voyage`; `files` for what their answers link to; `unknown` for a path
   * that no vendor has.
   */
  readonly vendor: string
  /**
   * `chat`, `count-tokens`, `embeddings`, `images`, `image-edits`, `videos`, `video-task`, `video-list`, `video-cancel`;
   * `picture` and `video` for files; `unknown` for a path that no vendor has.
   */
  readonly operation: string
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** Without the question mark; empty when there is none. */
  readonly query: string
  /** Lower-case names; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON; undefined when the body is empty or no JSON, such as a form. */
  readonly body: unknown
  /** The body as it came. */
  readonly bytes: Uint8Array
}

/** The parts of a call that come from the network. */
export type IncomingCall = Omit<SandboxCall, 'vendor' | 'operation' | 'body'>

/** The credential of a call, in whichever header or query field a vendor reads it; empty when there is none. */
export function credentialOf(call: Pick<SandboxCall, 'headers' | 'query'>): string {
  const bearer = /^Bearer\s+(.+)$/i.exec(call.headers['authorization'] ?? '')?.[1]
  return (
    bearer ??
    call.headers['x-api-key'] ??
    call.headers['x-goog-api-key'] ??
    new URLSearchParams(call.query).get('key') ??
    ''
  ).trim()
}
