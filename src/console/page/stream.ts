/**
 * Yields the text of a chat's answer, whole or streamed.
 * @throws Error with the message of an error event.
 */
export async function* readTexts(response: Response): AsyncIterable<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    yield textIn(await response.json(), 'message')
    return
  }
  for await (const line of linesOf(response)) {
    if (!line.startsWith('data:')) continue
    const data = line.slice('data:'.length).trim()
    if (data === '[DONE]') return
    yield textIn(JSON.parse(data), 'delta')
  }
  throw new Error('The answer broke off.')
}

interface Chunk {
  readonly error?: { readonly message?: string }
  readonly choices?: readonly { readonly message?: Content; readonly delta?: Content }[]
}
interface Content {
  readonly content?: string | null
}

function textIn(answer: unknown, member: 'message' | 'delta'): string {
  const { error, choices } = answer as Chunk
  if (error !== undefined) throw new Error(error.message ?? 'The call failed.')
  return choices?.[0]?.[member]?.content ?? ''
}

async function* linesOf(response: Response): AsyncIterable<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const lines = `${rest}${value}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
