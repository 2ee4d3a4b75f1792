import { isJsonObject } from '../../core/json.ts'
import type { AnswerRepair } from '../shared/openai-chat-dialect.ts'
import { reasoningTags } from '../shared/reasoning-tags.ts'

/** Ids that start from zero in each answer and therefore repeat in the next turn. */
const COUNTED_ID = /^call_\d+$/

/** Repairs answers in OpenAI's dialect: a call with a counted id or without an id gets a unique one. */
export const CALL_ID_REPAIR: AnswerRepair = {
  whole: (completion) => removeCountedIds(completion, 'message'),
  chunks: () => (chunk) => removeCountedIds(chunk, 'delta'),
  isOfToolCalls: true,
}

const REASONING_TAGS = reasoningTags('reasoning')

/** Also repairs reasoning that open-weight models write into the content (Bedrock, "OpenAI models"). */
export const OPEN_WEIGHT_REPAIR: AnswerRepair = {
  whole(completion) {
    const isRenamed = CALL_ID_REPAIR.whole(completion)
    return REASONING_TAGS.whole(completion) || isRenamed
  },
  chunks() {
    const splitChunk = REASONING_TAGS.chunks()
    return (chunk) => {
      const isRenamed = removeCountedIds(chunk, 'delta')
      return splitChunk(chunk) || isRenamed
    }
  },
}

function removeCountedIds({ choices }: Record<string, unknown>, member: 'message' | 'delta'): boolean {
  let isChanged = false
  for (const choice of Array.isArray(choices) ? choices : []) {
    const message = isJsonObject(choice) ? choice[member] : undefined
    const calls = isJsonObject(message) ? message['tool_calls'] : undefined
    for (const call of Array.isArray(calls) ? calls : []) {
      if (!isJsonObject(call) || typeof call['id'] !== 'string' || !COUNTED_ID.test(call['id'])) continue
      delete call['id']
      isChanged = true
    }
  }
  return isChanged
}
