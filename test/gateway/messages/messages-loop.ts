import { expect } from 'vitest'
import { blocksOfStream, eventsOf, type StreamedBlock } from '../../endpoints/messages/stream-events.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'

const PATH = '/v1/messages?beta=true'

/** A streamed answer in a loop of tool calls. */
export interface MessagesRound {
  readonly blocks: StreamedBlock[]
  readonly response: Response
}

/**
 * Sends a request as a coding client does: until an answer calls no tool, the content goes back unchanged, thinking included, with the
 * results in one turn. Later rounds go to the model `later`.
 */
export async function messagesLoop(
  started: Pick<StartedGateway, 'post'>,
  first: Readonly<Record<string, unknown>>,
  headers: Record<string, string>,
  later = first['model'],
): Promise<MessagesRound[]> {
  let request = first as { readonly messages: readonly unknown[] }
  const rounds: MessagesRound[] = []
  for (;;) {
    const response = await started.post(PATH, request, headers)
    expect(response.status, response.status === 200 ? '' : await response.text()).toBe(200)
    const { blocks, stopReason } = blocksOfStream(eventsOf(new Uint8Array(await response.arrayBuffer())))
    rounds.push({ blocks, response })
    if (stopReason !== 'tool_use') return rounds
    const content = blocks.map(({ json, ...block }) =>
      block.type === 'tool_use' ? { ...block, input: JSON.parse(String(json)) } : block,
    )
    const results = content.flatMap((block) =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result', tool_use_id: (block as { id?: string }).id, content: 'done' }]
        : [],
    )
    const messages = [...request.messages, { role: 'assistant', content }, { role: 'user', content: results }]
    request = { ...request, model: later, messages } as typeof request
  }
}
