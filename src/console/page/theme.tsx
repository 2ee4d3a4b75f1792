import { useState } from 'preact/hooks'

const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const STORED = 'signalbox-console-theme'

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED)
    return THEMES.find((theme) => theme === stored) ?? 'system'
  } catch {
    // Storage may be forbidden; the system's choice holds then.
    return 'system'
  }
}

/** Before anything is drawn, so that the page does not change its colours under the reader. */
export function applyTheme(theme = storedTheme()): void {
  document.documentElement.dataset['theme'] = theme
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(STORED, theme)
  } catch {
    // It holds until the page is left.
  }
}

/** Light, dark, or as the system has it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(storedTheme)
  return (
    <label class="theme">
      <span class="hidden">Theme</span>
      <select
        value={theme}
        onChange={(event) => {
          const chosen = THEMES.find((name) => name === event.currentTarget.value) ?? 'system'
          store(chosen)
          setTheme(chosen)
          applyTheme(chosen)
        }}
      >
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
