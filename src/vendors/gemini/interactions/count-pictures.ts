import { isJsonObject } from '../../../core/json.ts'

/**
 * How many pictures the steps of an answer hold: all picture blocks of all `model_output` steps, since text and picture may
 * stand in steps of their own (Interactions API, "Step").
 */
export function countPictures(steps: unknown): number {
  if (!Array.isArray(steps)) return 0
  let pictures = 0
  for (const step of steps) {
    if (!isJsonObject(step) || step['type'] !== 'model_output' || !Array.isArray(step['content'])) continue
    for (const block of step['content']) if (isPicture(block)) pictures += 1
  }
  return pictures
}

/** True for a block, or a delta, that holds a picture: as data, or by its address. */
export function isPicture(block: unknown): boolean {
  if (!isJsonObject(block) || block['type'] !== 'image') return false
  return typeof block['data'] === 'string' || typeof block['uri'] === 'string'
}
