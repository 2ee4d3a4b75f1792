import type { InteractionRequest } from './interaction-request.ts'

/** How many pictures the input holds, as data or by address. */
export function referenceImageCount({ input }: InteractionRequest): number {
  return typeof input === 'string' ? 0 : input.filter((block) => block.type === 'image').length
}
