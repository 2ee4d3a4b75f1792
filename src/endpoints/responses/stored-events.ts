import { isJsonObject } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'

type Members = Record<string, unknown>

/**
 * Returns a stored response as a stream with each text in one chunk. It always contains the last event, whose number is above
 * `startingAfter`: a client that lost a finer stream reads the whole answer there.
 * @param startingAfter Number of the last event that the caller has, or -1 for none.
 */
export function storedEvents(response: Readonly<Members>, startingAfter: number): string {
  let number = 0
  let text = ''
  const write = (type: string, members: Members): void => {
    if (number > startingAfter) text += sseEvent(type, JSON.stringify({ type, sequence_number: number, ...members }))
    number += 1
  }
  const begun = { ...response, status: 'in_progress', output: [], usage: null, completed_at: null }
  write('response.created', { response: begun })
  write('response.in_progress', { response: begun })
  const output = Array.isArray(response['output']) ? response['output'].filter(isJsonObject) : []
  output.forEach((item, index) => {
    writeItem(item, index, write)
  })
  const { status, error } = response
  const isFailed = status === 'failed' || status === 'cancelled'
  number = Math.max(number, startingAfter + 1)
  // Some clients read only the first of the two events, and some only the second.
  if (isJsonObject(error))
    write('error', { ...error, param: null, error: { type: 'server_error', ...error, param: null } })
  write(isFailed ? 'response.failed' : `response.${String(status)}`, { response })
  return text
}

function writeItem(item: Members, outputIndex: number, write: (type: string, members: Members) => void): void {
  const place = { item_id: item['id'], output_index: outputIndex }
  write('response.output_item.added', { output_index: outputIndex, item: emptied(item) })
  for (const [index, part] of partsOf(item['summary']).entries()) {
    const inPart = { ...place, summary_index: index }
    write('response.reasoning_summary_part.added', { ...inPart, part: { ...part, text: '' } })
    write('response.reasoning_summary_text.delta', { ...inPart, delta: part['text'] })
    write('response.reasoning_summary_text.done', { ...inPart, text: part['text'] })
    write('response.reasoning_summary_part.done', { ...inPart, part })
  }
  if (item['type'] === 'message') writeParts(partsOf(item['content']), place, write)
  if (item['type'] === 'function_call') {
    write('response.function_call_arguments.delta', { ...place, delta: item['arguments'] })
    write('response.function_call_arguments.done', { ...place, arguments: item['arguments'] })
  }
  if (item['type'] === 'custom_tool_call') {
    write('response.custom_tool_call_input.delta', { ...place, delta: item['input'] })
    write('response.custom_tool_call_input.done', { ...place, input: item['input'] })
  }
  write('response.output_item.done', { output_index: outputIndex, item })
}

function writeParts(parts: readonly Members[], place: Members, write: (type: string, members: Members) => void): void {
  for (const [index, part] of parts.entries()) {
    const inPart = { ...place, content_index: index }
    const isRefusal = part['type'] === 'refusal'
    write('response.content_part.added', {
      ...inPart,
      part: { ...part, ...(isRefusal ? { refusal: '' } : { text: '', annotations: [] }) },
    })
    if (isRefusal) {
      write('response.refusal.delta', { ...inPart, delta: part['refusal'] })
      write('response.refusal.done', { ...inPart, refusal: part['refusal'] })
    } else {
      write('response.output_text.delta', { ...inPart, delta: part['text'], logprobs: [] })
      for (const [number, annotation] of partsOf(part['annotations']).entries())
        write('response.output_text.annotation.added', { ...inPart, annotation_index: number, annotation })
      write('response.output_text.done', { ...inPart, text: part['text'], logprobs: [] })
    }
    write('response.content_part.done', { ...inPart, part })
  }
}

function emptied(item: Members): Members {
  const begun = { ...item, ...('status' in item ? { status: 'in_progress' } : {}) }
  if (item['type'] === 'message') return { ...begun, content: [] }
  if (item['type'] === 'reasoning') return { ...begun, summary: [], encrypted_content: null }
  if (item['type'] === 'function_call') return { ...begun, arguments: '' }
  return item['type'] === 'custom_tool_call' ? { ...begun, input: '' } : begun
}

function partsOf(parts: unknown): Members[] {
  return Array.isArray(parts) ? parts.filter(isJsonObject) : []
}
