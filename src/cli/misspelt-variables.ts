import { mistakesBetween } from '../core/known-members.ts'
import { SETTINGS } from './settings.ts'
import type { Environment } from './terminal.ts'

const PREFIX = 'SIGNALBOX_'

/** Maximum number of wrong letters. Two swapped letters count as one mistake. */
const MOST_MISTAKES = 1

/** Variables that Kubernetes sets for a service with the gateway's name. */
const SERVICE = /_(?:SERVICE_(?:HOST|PORT(?:_.*)?)|PORT(?:_.*)?)$/

const KNOWN: readonly string[] = [...SETTINGS.map(({ variable }) => variable), `${PREFIX}CONFIG`].flatMap((name) =>
  name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : [],
)

/**
 * Returns variables that nearly match the name of a setting: a misspelt limit would have no effect. Other variables with this prefix
 * may belong to the host, or to a Kubernetes service of this name.
 */
export function misspeltVariables(environment: Environment): string[] {
  return Object.entries(environment).flatMap(([name, value = '']) => {
    const own = name.slice(PREFIX.length)
    if (!name.startsWith(PREFIX) || KNOWN.includes(own) || SERVICE.test(name) || value.trim() === '') return []
    const meant = KNOWN.find((known) => mistakesBetween(own, known, MOST_MISTAKES) <= MOST_MISTAKES)
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${PREFIX}${meant}?`]
  })
}
