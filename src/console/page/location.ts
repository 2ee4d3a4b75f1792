import { useEffect, useState } from 'preact/hooks'

/** Current view, from the fragment after the `#` of the URL, so that any mount serves every view. */
export interface Place {
  /** Path of the view, such as `['requests', 'req_1']`. */
  readonly steps: readonly string[]
  readonly query: URLSearchParams
}

function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const steps = path.split('/').filter((step) => step !== '')
  return { steps: steps.map(decoded), query: new URLSearchParams(query) }
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  useEffect(() => {
    const listener = (): void => setPlace(placeOf(location.hash))
    addEventListener('hashchange', listener)
    return () => removeEventListener('hashchange', listener)
  }, [])
  return place
}

/** Returns the URL of a view. */
export function hrefOf(
  steps: readonly string[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return `#/${steps.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}
