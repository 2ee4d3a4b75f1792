import { useState } from 'preact/hooks'

const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const STORED = 'signalbox-console-theme'

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED)
    return THEMES.find((theme) => theme === stored) ?? 'system'
  } catch {
    // Storage may be disabled; then the system's theme applies.
    return 'system'
  }
}

/** Runs before the first render, so that the colours do not change afterwards. */
export function applyTheme(theme = storedTheme()): void {
  document.documentElement.dataset['theme'] = theme
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(STORED, theme)
  } catch {
    // The choice applies until the page is closed.
  }
}

/** Switch between light, dark and the system's theme. */
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
