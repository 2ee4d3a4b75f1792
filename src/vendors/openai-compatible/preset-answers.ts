import { isJsonObject } from '../../core/json.ts'
import type { AnswerRepair } from '../shared/openai-chat-dialect.ts'
import type { Preset } from '../shared/preset.ts'
import { ThinkTagSplitter } from './think-tags.ts'

/** The repair of answers that a preset asks for; undefined when its answers need none. */
export function answerRepairOf({ thinksInTags, hasFractionalTimes }: Preset): AnswerRepair | undefined {
  if (thinksInTags !== true && hasFractionalTimes !== true) return undefined
  return {
    whole(completion) {
      const isCut = hasFractionalTimes === true && cutTime(completion)
      return (thinksInTags === true && splitWhole(completion)) || isCut
    },
    chunks() {
      const splitters = new Map<number, ThinkTagSplitter>()
      return (chunk) => {
        const isCut = hasFractionalTimes === true && cutTime(chunk)
        return (thinksInTags === true && splitChunk(chunk, splitters)) || isCut
      }
    },
  }
}

function cutTime(body: Record<string, unknown>): boolean {
  const { created } = body
  if (typeof created !== 'number' || Number.isInteger(created)) return false
  body['created'] = Math.floor(created)
  return true
}

function splitWhole(completion: Record<string, unknown>): boolean {
  let changed = false
  for (const choice of objectsOf(completion['choices'])) {
    const { message } = choice
    if (!isJsonObject(message) || typeof message['content'] !== 'string') continue
    const splitter = new ThinkTagSplitter()
    const parts = [splitter.push(message['content']), splitter.end()]
    const reasoning = parts.map((part) => part.reasoning).join('')
    if (reasoning === '') continue
    message['content'] = parts.map((part) => part.text).join('')
    message['reasoning_content'] ??= reasoning
    changed = true
  }
  return changed
}

function splitChunk(chunk: Record<string, unknown>, splitters: Map<number, ThinkTagSplitter>): boolean {
  let changed = false
  for (const choice of objectsOf(chunk['choices'])) {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    const splitter = splitters.get(index) ?? new ThinkTagSplitter()
    splitters.set(index, splitter)
    const delta: Record<string, unknown> = isJsonObject(choice['delta']) ? choice['delta'] : {}
    const content = typeof delta['content'] === 'string' ? delta['content'] : ''
    const isLast = typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== ''
    const pushed = splitter.push(content)
    const rest = isLast ? splitter.end() : { text: '', reasoning: '' }
    const text = pushed.text + rest.text
    const reasoning = pushed.reasoning + rest.reasoning
    if (text === content && reasoning === '') continue
    delta['content'] = text === '' ? null : text
    if (reasoning !== '') delta['reasoning_content'] = reasoning
    choice['delta'] = delta
    changed = true
  }
  return changed
}

function objectsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
