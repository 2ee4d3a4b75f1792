/** The four kinds of calls of the drills. */
export type CallForm = 'chat' | 'stream' | 'embeddings' | 'image'

/** An answer as a vendor gives it, in two parts between which it can break. */
export interface RightAnswer {
  readonly form: CallForm
  /** Value of `content-type`. */
  readonly type: string
  /** Whole events of a stream, including the first content. */
  readonly first: string
  readonly second: string
}

/** The vendor's answer to one call. Every answer names the call, so that nobody gets another caller's. */
export function rightAnswer(form: CallForm, call: string): RightAnswer {
  if (form === 'stream') {
    const chunk = (members: object): string =>
      `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'up', ...members })}\n\n`
    const text = (content: string): string =>
      chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
    return {
      form,
      type: 'text/event-stream',
      first: chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }) + text(`answer to ${call}`),
      second:
        text(', whole') +
        chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
        chunk({ choices: [], usage: CHAT_USAGE }) +
        'data: [DONE]\n\n',
    }
  }
  const json = JSON.stringify(wholeAnswer(form, call))
  const middle = Math.floor(json.length / 2)
  return { form, type: 'application/json', first: json.slice(0, middle), second: json.slice(middle) }
}

const CHAT_USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

function wholeAnswer(form: Exclude<CallForm, 'stream'>, call: string): object {
  switch (form) {
    case 'chat':
      return {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'up',
        choices: [
          { index: 0, message: { role: 'assistant', content: `answer to ${call}, whole` }, finish_reason: 'stop' },
        ],
        usage: CHAT_USAGE,
      }
    case 'embeddings':
      return {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [Number(call), 0.5] }],
        model: 'up',
        usage: { prompt_tokens: 10, total_tokens: 10 },
      }
    case 'image':
      return {
        created: 1,
        data: [{ b64_json: Buffer.from(`picture ${call}`).toString('base64') }],
        usage: {
          input_tokens: 10,
          output_tokens: 20,
          total_tokens: 30,
          input_tokens_details: { text_tokens: 10, image_tokens: 0 },
        },
      }
  }
}
