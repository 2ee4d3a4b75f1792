import { PICTURE_BYTES } from './image-bytes.mjs'
import { CONTENT_EVENTS } from './vendor-answers.mjs'

/** Returns the faults of an answer, including a wrong model id for proxies that return the public one. */
export function jsonFaults({ body }, { proxy, model, isWhole }) {
  const answer = JSON.parse(body)
  const faults = isWhole(answer) ? [] : ['the answer is not whole']
  if (proxy.isTranslating && answer.model !== model) faults.push(`the model is ${answer.model}, not ${model}`)
  return faults
}

/** Returns the faults of a stream of chat completion chunks that must report its usage. */
export function chatStreamFaults({ body }, { proxy, model, contentEvents = CONTENT_EVENTS }) {
  const events = body.trimEnd().split('\n\n')
  if (events.pop() !== 'data: [DONE]') return ['the stream does not end with [DONE]']
  const chunks = events.map((event) => JSON.parse(event.slice('data: '.length)))
  const texts = chunks.filter((chunk) => chunk.choices[0]?.delta.content)
  const faults = []
  if (texts.length !== contentEvents) faults.push(`${texts.length} pieces of text instead of ${contentEvents}`)
  if (!chunks.some((chunk) => chunk.usage?.completion_tokens > 0)) faults.push('no usage')
  if (proxy.isTranslating && chunks.some((chunk) => chunk.model !== model)) faults.push(`a model is not ${model}`)
  return faults
}

/** Returns the faults of a stream in Anthropic's dialect; `model` is the expected model id of a gateway. */
export function messagesStreamFaults({ body }, { proxy, model }) {
  const texts = body.split('"text_delta"').length - 1
  const isWhole = texts === CONTENT_EVENTS && body.includes('event: message_stop')
  const faults = isWhole ? [] : [`${texts} pieces of text, or no end`]
  if (proxy.isTranslating && !body.includes(`"model":"${model}"`)) faults.push(`the model is not ${model}`)
  return faults
}

/** Returns the faults of a stream of Responses; `model` is the expected model id of a gateway. */
export function responsesStreamFaults({ body }, { proxy, model }) {
  const texts = body.split('event: response.output_text.delta').length - 1
  const isWhole = texts === CONTENT_EVENTS && body.includes('event: response.completed')
  const faults = isWhole ? [] : [`${texts} pieces of text, or no end`]
  if (proxy.isTranslating && !body.includes(`"model":"${model}"`)) faults.push(`the model is not ${model}`)
  return faults
}

/** Returns the faults of a result of the MCP tool `chat_complete`. */
export function mcpChatFaults({ body, head }, { model }) {
  if (!/\r\ncontent-type: *application\/json/i.test(head)) return ['the answer is not plain JSON']
  const { result } = JSON.parse(body)
  const { structuredContent: chat, isError } = result ?? {}
  if (isError || chat?.model !== model || chat.usage.completion_tokens === 0) return ['no chat completion']
  return chat.choices[0].message.content.length > 400 ? [] : ['the answer is not whole']
}

/** Returns the faults of the answer to an image edit. */
export function imageEditFaults({ body }) {
  const { data, usage } = JSON.parse(body)
  const isWhole = data.length === 1 && data[0].b64_json.length === PICTURE_BYTES && usage.output_tokens > 0
  return isWhole ? [] : ['the picture is not whole']
}

/** Returns the faults of the receipt for a video; a gateway returns 202 with the id of its own task. */
export function videoFaults({ status, body }, { proxy, model }) {
  const receipt = JSON.parse(body)
  const faults = receipt.output.task_status === 'PENDING' ? [] : ["the vendor's output is missing"]
  if (!proxy.isTranslating) return faults
  if (status !== 202) faults.push(`status ${status}, not 202`)
  if (receipt.model !== model) faults.push(`the model is ${receipt.model}, not ${model}`)
  if (receipt.status !== 'queued') faults.push(`the status is ${receipt.status}, not queued`)
  return faults
}
