import { readFileSync } from 'node:fs'
import { SettingError } from './setting-values.ts'

/**
 * Reads a JSON file that a setting names.
 * @throws SettingError naming setting and file.
 */
export function readJson(name: string, path: string): unknown {
  try {
    return JSON.parse(readText(name, path)) as unknown
  } catch (error) {
    if (error instanceof SettingError) throw error
    throw new SettingError(`${name}: the file ${path} does not hold valid JSON`)
  }
}

/**
 * Reads a text file that a setting names.
 * @throws SettingError naming setting and file.
 */
export function readText(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown reason'
    throw new SettingError(`${name}: the file ${path} cannot be read (${reason})`)
  }
}
