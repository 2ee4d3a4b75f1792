import { render } from 'preact'
import { App, applyTheme } from './app.tsx'

applyTheme()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
