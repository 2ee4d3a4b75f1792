import { existsSync } from 'node:fs'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import { DEFAULT_STORE, missingEngine } from './open-store.ts'
import type { ServeSettings } from './serve-settings.ts'

/**
 * Why a server that was told no store serves from memory. Undefined: it does not. Money is kept there only on request, and nothing
 * that an earlier start has stored is left behind without a word.
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
