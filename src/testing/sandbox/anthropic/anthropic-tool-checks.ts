import { asText } from '../model/loose-json.ts'
import { refuseAnthropic } from './anthropic-errors.ts'
import { blocksOf } from './content-blocks.ts'

type Json = Readonly<Record<string, unknown>>

interface Turn {
  readonly role: string
  readonly blocks: Json[]
}

/** Neighbours of one role are one turn to Anthropic. */
function joinTurns(messages: readonly Json[]): Turn[] {
  const turns: Turn[] = []
  for (const message of messages) {
    const role = asText(message['role'])
    const last = turns.at(-1)
    if (last?.role === role) last.blocks.push(...blocksOf(message))
    else turns.push({ role, blocks: blocksOf(message) })
  }
  return turns
}

/** Every call is answered by a result at the beginning of the next turn, and every result answers a call. */
export function checkToolPairs(messages: readonly Json[]): void {
  const turns = joinTurns(messages)
  turns.forEach((turn, position) => {
    if (turn.role === 'assistant') {
      const next = turns[position + 1]
      const answered = leadingResults(next)
      const missing = idsOf(turn.blocks, 'tool_use', 'id').filter((id) => !answered.includes(id))
      if (missing.length > 0) {
        refuseAnthropic(
          `messages.${position}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
        )
      }
      return
    }
    const results = idsOf(turn.blocks, 'tool_result', 'tool_use_id')
    const before = turns[position - 1]
    const called = before?.role === 'assistant' ? idsOf(before.blocks, 'tool_use', 'id') : []
    const unexpected = results.find((id) => !called.includes(id))
    if (unexpected !== undefined) {
      refuseAnthropic(
        `messages.${position}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${unexpected}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    }
    if (new Set(results).size < results.length) {
      refuseAnthropic(
        `messages.${position}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with one id`,
      )
    }
  })
}

/** Ids of the results that stand before any other block. */
function leadingResults(turn: Turn | undefined): string[] {
  if (turn?.role !== 'user') return []
  const end = turn.blocks.findIndex((block) => block['type'] !== 'tool_result')
  return idsOf(end === -1 ? turn.blocks : turn.blocks.slice(0, end), 'tool_result', 'tool_use_id')
}

function idsOf(blocks: readonly Json[], type: string, field: string): string[] {
  return blocks.filter((block) => block['type'] === type).map((block) => asText(block[field]))
}
