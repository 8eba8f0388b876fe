@echo off
rem Turno runs on Linux and macOS. On Windows it needs WSL 2 with a Linux distribution; this starts it there.
setlocal
where wsl.exe >nul 2>nul
if errorlevel 1 goto missing
wsl.exe --exec /bin/true >nul 2>nul
if errorlevel 1 goto missing
wsl.exe --cd "%~dp0." --exec bash ./iniciar.sh %*
exit /b %errorlevel%
:missing
echo O Turno precisa do WSL 2 no Windows: instale-o com "wsl --install" e comece de novo.
echo Turno needs WSL 2 on Windows: install it with "wsl --install" and start again.
exit /b 1
