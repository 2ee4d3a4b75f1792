import type { AnswerRepair } from '../shared/openai-chat-dialect.ts'
import type { Preset } from '../shared/preset.ts'
import { reasoningTags } from '../shared/reasoning-tags.ts'

const THINK_TAGS = reasoningTags('think')

/** Returns the repair that the answers of a preset need, if any. */
export function answerRepairOf({ thinksInTags, hasFractionalTimes }: Preset): AnswerRepair | undefined {
  if (thinksInTags !== true && hasFractionalTimes !== true) return undefined
  return {
    whole(completion) {
      const isCut = hasFractionalTimes === true && cutTime(completion)
      return (thinksInTags === true && THINK_TAGS.whole(completion)) || isCut
    },
    chunks() {
      const splitChunk = THINK_TAGS.chunks()
      return (chunk) => {
        const isCut = hasFractionalTimes === true && cutTime(chunk)
        return (thinksInTags === true && splitChunk(chunk)) || isCut
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
