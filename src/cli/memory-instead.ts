import { existsSync } from 'node:fs'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import { DEFAULT_STORE, missingEngine } from './open-store.ts'
import type { ServeSettings } from './serve-settings.ts'

/**
 * Returns why a server without a store setting uses memory, or `undefined` if it does not. It keeps money in memory only on request,
 * and never silently ignores the data of an earlier start.
 */
export async function memoryInstead({
  prices,
  billing,
}: Pick<ServeSettings, 'prices' | 'billing'>): Promise<{ readonly reason: string } | undefined> {
  const isCharging = prices !== undefined && billing !== 'off'
  if (isCharging || existsSync(DEFAULT_STORE.path)) return undefined
  try {
    const probe = await openWithEngine(':memory:')
    probe.close()
    return undefined
  } catch (error) {
    const reason = missingEngine(error)
    if (reason === undefined) throw error
    return { reason }
  }
}
